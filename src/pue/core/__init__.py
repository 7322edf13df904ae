"""The mathematics: data, losses, weights, corrections, risks and what follows from them. No files, no estimation."""
