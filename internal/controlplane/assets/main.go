// Command assets is etcd, kube-apiserver and kube-controller-manager in one binary. It runs the program it is named
// after, so that one link each makes the whole control plane:
//
//	ln assets kube-apiserver
//
// It is a module of its own, outside the workspace: nothing else of this repository is to depend on k8s.io/kubernetes.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	name := filepath.Base(os.Args[0])
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	default:
		fmt.Fprintf(os.Stderr, "%s: link this binary as etcd, kube-apiserver or kube-controller-manager\n", name)
		os.Exit(2)
	}
}
