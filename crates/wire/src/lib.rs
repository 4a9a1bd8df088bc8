//! What travels between a Kubernetes API server and its clients: keys, versions, selectors, encoded objects, framing.
