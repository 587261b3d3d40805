"""The controller's servo law; pure."""
