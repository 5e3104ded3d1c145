"""Adapters to other libraries; each is imported only when its library is there."""
