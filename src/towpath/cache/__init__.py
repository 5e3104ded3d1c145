"""Keeping results of tasks, so that they need not run again."""
