package main

import "github.com/spf13/cobra"

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "hixl",
		Short:         "RDMA over UDP in user space: look at packets and hosts, and the counterparts of the RDMA tools",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newDumpCommand())
	root.AddCommand(newInfoCommand())
	root.AddCommand(newPingpongCommand())
	root.AddCommand(newPerfCommand())
	root.AddCommand(newRpingCommand())
	root.AddCommand(newUcmatoseCommand())
	return root
}
