"""Pictures of graphs, made here: no network, no browser, no system binary.

A graph comes in as nodes, edges and joins (`sketch`), is laid out in layers
(`ranks`, `order`, `place`, `arrange`; subgraphs by `nest`), and goes out as SVG,
as text, or, with an extra, as PNG. This room knows no plan, saver or run.
"""
