"""The Kubernetes objects podtide reads and writes, as typed structs; the CRDs are generated from them."""
