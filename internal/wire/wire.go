// Package wire reads a request body once, keeps its bytes, finds the fields that routing
// needs, splices edits into it, and writes errors in the caller's surface.
package wire
