"""A UR controller for tests: real servers, a real URScript, an arm that moves by documented models."""
