// Package webhook admits Workspaces: it estimates the nodes of a replica when one is created, and refuses what must not
// be scaled.
//
//   - [Defaulter] answers create and update requests of workspaces and writes the annotation with the estimate. Package
//     v1alpha1 says why it is an annotation.
//   - [Validator] answers create and update requests of workspaces.
//   - [ScaleValidator] answers update requests of workspaces/scale. The object of such a request is an
//     autoscaling/v1 Scale, which says nothing of preferred nodes, so the workspace is read from the API server.
//
// The reading is not a race. The API server asks with the Scale of the version that it is about to replace, and replaces
// it only if the workspace still has that version, asking again otherwise. The reader bypasses caches, so it returns that
// version or a later one: either it judges exactly what is replaced, or the replacement fails whatever it says.
//
// All three answer from the request and from reads alone, and change nothing (sideEffects: None).
package webhook
