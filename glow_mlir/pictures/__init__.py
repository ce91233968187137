"""Pictures of compilations: graphs for graphviz, and a page with the arena and the graphs."""
