package ovsdbtest

import (
	"strings"
	"testing"
	"time"
)

// StartCluster runs a RAFT cluster of n members and waits until it has a leader
// and all have joined.
func StartCluster(t testing.TB, options Options, n int) []*Server {
	t.Helper()
	members := make([]*Server, n)
	for i := range members {
		s := newServer(t, options)
		s.raft = "tcp:" + freeAddress(t, "127.0.0.1")
		if i == 0 {
			s.tool("create-cluster", s.file(), s.schemaFile(), s.raft)
		} else {
			s.tool("join-cluster", s.file(), s.name, s.raft, members[0].raft)
		}
		s.Run()
		members[i] = s
		s.waitJoined()
	}
	return members
}

func (s *Server) waitJoined() {
	s.t.Helper()
	s.waitStatus("join the cluster", func(status string) bool {
		return strings.Contains(status, "Status: cluster member") && !strings.Contains(status, "Leader: unknown")
	})
}

// Leader waits for the leader among the members that run.
func Leader(t testing.TB, members []*Server) *Server {
	t.Helper()
	deadline := time.Now().Add(Timeout)
	for time.Now().Before(deadline) {
		for _, m := range members {
			if m.process != nil && strings.Contains(m.clusterStatus(), "Role: leader") {
				return m
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the cluster has no leader")
	return nil
}

func (s *Server) clusterStatus() string {
	s.t.Helper()
	return s.Appctl("cluster/status", s.name)
}

func (s *Server) waitStatus(what string, ok func(string) bool) {
	s.t.Helper()
	deadline := time.Now().Add(Timeout)
	for {
		status := s.clusterStatus()
		if ok(status) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("member does not %s:\n%s", what, status)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
