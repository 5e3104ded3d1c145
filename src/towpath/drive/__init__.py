"""Drivers: they obey the commands of a program, one driver per colour.

A driver decides how, never what. The blocking and the asyncio driver obey the
same list; the simulator in `towpath.testing` is the third.
"""
