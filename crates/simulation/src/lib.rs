//! Seeded worlds in which the whole informer runs in one thread against a model.
