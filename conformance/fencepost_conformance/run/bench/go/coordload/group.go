package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// member is a member of either protocol, as far as a group starts and ends it.
type member interface {
	start()
	leave() error
	link() **conn // the member's connection
}

// group has what groups of both protocols share: their members, the events of
// these, and how they begin and end.
type group[M member, E any] struct {
	name       string
	topic      topic
	addr       string
	vers       versions
	ms         []M
	hbEvery    atomic.Int64 // ns between heartbeats; 0: only when kicked
	events     chan E
	stop       chan struct{}
	wg         sync.WaitGroup
	heartbeats atomic.Int64
	halted     bool
	live       map[int]E
}

// begin connects and starts n members.
func (g *group[M, E]) begin(n int, every time.Duration, add func(*conn)) error {
	cs, err := dialMany(g.addr, g.vers, n)
	if err != nil {
		return err
	}
	g.hbEvery.Store(int64(every))
	for i := range cs {
		add(cs[i])
	}
	for _, m := range g.ms {
		m.start()
	}
	return nil
}

// halt stops the members' goroutines and closes their connections; the members
// stay in the group.
func (g *group[M, E]) halt() {
	close(g.stop)
	for _, m := range g.ms {
		(*m.link()).nc.SetDeadline(time.Now().Add(5 * time.Second))
	}
	g.wg.Wait()
	for _, m := range g.ms {
		(*m.link()).nc.Close()
	}
	g.halted = true
}

// close stops the group; where check is set, all live members leave over one
// fresh connection, and every answer is checked.
func (g *group[M, E]) close(check bool) error {
	if !g.halted {
		g.halt()
	}
	if !check {
		return nil
	}
	c, err := dial(g.addr, g.vers)
	if err != nil {
		return err
	}
	defer c.nc.Close()
	c.wait = 10 * time.Second
	for i, m := range g.ms {
		if _, ok := g.live[i]; !ok {
			continue
		}
		*m.link() = c
		if err := m.leave(); err != nil {
			return err
		}
	}
	return nil
}
