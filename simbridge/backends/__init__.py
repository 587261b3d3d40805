"""What executes a plan: simulation, URSim or a real arm, behind one interface."""
