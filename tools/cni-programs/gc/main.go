// Collects the garbage of a network as a container runtime does: by libcni, with the attachments that are still in use.
// cnitool names none, so that nothing but an empty network could be collected by it.
//
// As with cnitool, CNI_PATH says where plugins are and NETCONFPATH where networks are:
//
//	libcni-gc <network> [<container id>/<interface>]...
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
)

func main() {
	if err := collect(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func collect(name string, inUse []string) error {
	network, err := libcni.LoadNetworkConf(os.Getenv("NETCONFPATH"), name)
	if err != nil {
		return err
	}
	valid := []types.GCAttachment{}
	for _, each := range inUse {
		container, interfaceName, _ := strings.Cut(each, "/")
		valid = append(valid, types.GCAttachment{ContainerID: container, IfName: interfaceName})
	}
	plugins := libcni.NewCNIConfig(filepath.SplitList(os.Getenv("CNI_PATH")), nil)
	return plugins.GCNetworkList(context.Background(), network, &libcni.GCArgs{ValidAttachments: valid})
}
