// Package controller carries out LLMAutoScalers: it keeps a k8s.Loop for each of them and calls its Tick when it is due.
//
// Objects have no goroutines of their own. An object waits in the work queue until its next round, and a bounded number of
// workers makes the rounds, so a thousand objects cost what their rounds cost. The outcome of a round goes to events, metrics
// and the log at once, and to the object's status if it says something new.
package controller
