package shaders

// ExactRoot is root, for tests.
var ExactRoot = root
