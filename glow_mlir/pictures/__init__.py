"""Pictures of what a compilation made: graphs for graphviz, and a page with the arena and the graphs."""
