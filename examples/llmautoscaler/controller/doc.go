// Package controller carries out LLMAutoScalers: it keeps a k8s.Loop for each of them and lets it tick when it is due.
//
// There is no goroutine for an object. An object waits in the work queue until its next round, and a bounded number of
// workers does the rounds, so that a thousand objects cost what their rounds cost. What a round came to goes to events,
// metrics and the log at once, and to the object's status where it says something new.
package controller
