"""Keeping checkpoints: the contract, the savers and the codec."""
