"""Features of images, learnt once and without labels."""
