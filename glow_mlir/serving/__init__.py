"""Networks behind the Open Inference Protocol v2, over HTTP and gRPC: what crosses the wire, and who answers it."""
