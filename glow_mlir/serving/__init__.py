"""Networks behind the Open Inference Protocol v2, over HTTP and gRPC: wire formats, services and servers."""
