"""What a plan can be applied to."""
