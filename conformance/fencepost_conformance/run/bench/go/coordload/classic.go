// A group of classic members: one goroutine and one connection each.
package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type cEvent struct {
	idx   int
	gen   int32
	parts []int32
	at    time.Time
	left  bool
	err   error
}

type classicGroup struct {
	group[*classicMember, cEvent]
	meta []byte
	// asked is called when a member has written a JoinGroup request that can
	// start a rebalance.
	asked   func(idx int)
	needsID atomic.Bool // the broker answers MEMBER_ID_REQUIRED
}

type classicMember struct {
	g    *classicGroup
	idx  int
	c    *conn
	id   string
	gen  int32
	kick chan bool // true: heartbeat now until told to rejoin; false: leave
}

func newClassicGroup(addr string, vers versions, name string, t topic) *classicGroup {
	m := kmsg.NewConsumerMemberMetadata()
	m.Version = 1
	m.Topics = []string{t.name}
	return &classicGroup{meta: m.AppendTo(nil), group: group[*classicMember, cEvent]{
		name: name, topic: t, addr: addr, vers: vers,
		events: make(chan cEvent, 1<<16), stop: make(chan struct{}), live: map[int]cEvent{},
	}}
}

func (m *classicMember) link() **conn { return &m.c }

func (g *classicGroup) add(c *conn) *classicMember {
	m := &classicMember{g: g, idx: len(g.ms), c: c, kick: make(chan bool, 1)}
	g.ms = append(g.ms, m)
	g.live[m.idx] = cEvent{idx: m.idx, gen: -1}
	return m
}

func (m *classicMember) start() {
	m.g.wg.Add(1)
	go func() {
		defer m.g.wg.Done()
		if err := m.run(); err != nil {
			select {
			case <-m.g.stop: // closing: errors of closed sockets are expected
			default:
				m.g.events <- cEvent{idx: m.idx, err: fmt.Errorf("group %s member %d: %w", m.g.name, m.idx, err)}
			}
		}
	}()
}

func (m *classicMember) run() error {
	if err := m.rejoin(); err != nil {
		return err
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	// A member's heartbeats keep their own phase, drawn anew after every kick or
	// rebalance: without this all members would beat together, in step with the
	// repetitions.
	var next time.Time
	phase := func() {
		next = time.Now()
		if every := m.g.hbEvery.Load(); every > 0 {
			next = next.Add(-time.Duration(rand.Int64N(every)))
		}
	}
	phase()
	for {
		every := time.Duration(m.g.hbEvery.Load())
		d := time.Hour
		if every > 0 {
			next = next.Add(every)
			if now := time.Now(); next.Before(now) {
				next = now // late: no bursts to catch up
			}
			d = time.Until(next)
		}
		timer.Reset(d)
		urgent := false
		select {
		case <-m.g.stop:
			return nil
		case k := <-m.kick:
			if !k {
				return m.leave()
			}
			urgent = true
			phase()
		case <-timer.C:
		}
		for {
			code, err := m.heartbeat()
			if err != nil {
				return err
			}
			if code == 27 || code == 22 {
				if err := m.rejoin(); err != nil {
					return err
				}
				phase()
				break
			}
			if code != 0 {
				return kerrf("Heartbeat", code)
			}
			// A kick while periodic only wakes the loop up.
			if !urgent || m.g.hbEvery.Load() > 0 {
				break
			}
			time.Sleep(time.Millisecond)
			select {
			case <-m.g.stop:
				return nil
			default:
			}
		}
	}
}

func (m *classicMember) heartbeat() (int16, error) {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.Generation, req.MemberID = m.g.name, m.gen, m.id
	r, err := m.c.call(req)
	if err != nil {
		return 0, err
	}
	m.g.heartbeats.Add(1)
	return r.(*kmsg.HeartbeatResponse).ErrorCode, nil
}

func (m *classicMember) rejoin() error {
	for try := 0; try < 200; try++ {
		req := kmsg.NewPtrJoinGroupRequest()
		req.Group, req.MemberID = m.g.name, m.id
		req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 60000, 60000
		req.ProtocolType = "consumer"
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = "range", m.g.meta
		req.Protocols = append(req.Protocols, p)
		corr, err := m.c.send(req)
		if err != nil {
			return err
		}
		if f := m.g.asked; f != nil && (m.id != "" || !m.g.needsID.Load()) {
			f(m.idx)
		}
		r, err := m.c.recv(req, corr)
		if err != nil {
			return err
		}
		join := r.(*kmsg.JoinGroupResponse)
		switch join.ErrorCode {
		case 0:
		case 79:
			m.g.needsID.Store(true)
			m.id = join.MemberID
			continue
		case 27:
			time.Sleep(time.Millisecond)
			continue
		default:
			return kerrf("JoinGroup", join.ErrorCode)
		}
		if m.id != "" && m.id != join.MemberID {
			return fmt.Errorf("JoinGroup changed member id %q to %q", m.id, join.MemberID)
		}
		m.id, m.gen = join.MemberID, join.Generation
		sreq := kmsg.NewPtrSyncGroupRequest()
		sreq.Group, sreq.Generation, sreq.MemberID = m.g.name, m.gen, m.id
		sreq.ProtocolType, sreq.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
		if join.LeaderID == m.id {
			sreq.GroupAssignment = rangeAssign(m.g.topic, join.Members)
			time.Sleep(*flagLeaderLast)
		}
		r, err = m.c.call(sreq)
		if err != nil {
			return err
		}
		sync := r.(*kmsg.SyncGroupResponse)
		switch sync.ErrorCode {
		case 0:
		case 27, 22:
			continue
		default:
			return fmt.Errorf("%w (generation %d)", kerrf("SyncGroup", sync.ErrorCode), m.gen)
		}
		at := time.Now()
		parts, err := decodeAssignment(sync.MemberAssignment, m.g.topic.name)
		if err != nil {
			return err
		}
		m.g.events <- cEvent{idx: m.idx, gen: m.gen, parts: parts, at: at}
		return nil
	}
	return errors.New("200 rounds of JoinGroup without a finished SyncGroup")
}

func (m *classicMember) leave() error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = m.g.name, m.id
	lm := kmsg.NewLeaveGroupRequestMember()
	lm.MemberID = m.id
	req.Members = append(req.Members, lm)
	r, err := m.c.call(req)
	if err != nil {
		return err
	}
	resp := r.(*kmsg.LeaveGroupResponse)
	if resp.ErrorCode != 0 {
		return kerrf("LeaveGroup", resp.ErrorCode)
	}
	if resp.Version >= 3 {
		for _, x := range resp.Members {
			if x.ErrorCode != 0 {
				return kerrf("LeaveGroup member", x.ErrorCode)
			}
		}
	}
	m.g.events <- cEvent{idx: m.idx, left: true, at: time.Now()}
	return nil
}

func rangeAssign(t topic, ms []kmsg.JoinGroupResponseMember) []kmsg.SyncGroupRequestGroupAssignment {
	ids := make([]string, len(ms))
	for i := range ms {
		ids[i] = ms[i].MemberID
	}
	sort.Strings(ids)
	out := make([]kmsg.SyncGroupRequestGroupAssignment, 0, len(ids))
	per, extra, at := t.parts/len(ids), t.parts%len(ids), 0
	for i, id := range ids {
		n := per
		if i < extra {
			n++
		}
		a := kmsg.NewConsumerMemberAssignment()
		if n > 0 {
			at0 := kmsg.NewConsumerMemberAssignmentTopic()
			at0.Topic = t.name
			for k := 0; k < n; k++ {
				at0.Partitions = append(at0.Partitions, int32(at+k))
			}
			a.Topics = append(a.Topics, at0)
		}
		at += n
		ga := kmsg.NewSyncGroupRequestGroupAssignment()
		ga.MemberID, ga.MemberAssignment = id, a.AppendTo(nil)
		out = append(out, ga)
	}
	return out
}

func decodeAssignment(b []byte, topicName string) ([]int32, error) {
	if len(b) == 0 {
		return nil, errors.New("SyncGroup: empty assignment (the leader sends one for every member)")
	}
	a := kmsg.NewConsumerMemberAssignment()
	if err := a.ReadFrom(b); err != nil {
		return nil, fmt.Errorf("SyncGroup assignment: %w", err)
	}
	var parts []int32
	for _, t := range a.Topics {
		if t.Topic != topicName {
			return nil, fmt.Errorf("SyncGroup: assignment for topic %q", t.Topic)
		}
		parts = append(parts, t.Partitions...)
	}
	return parts, nil
}

// coveredOnce: every partition 0..n-1 is in exactly one of the lists.
func coveredOnce(n int, lists func(yield func([]int32) bool)) error {
	seen := make([]bool, n)
	count := 0
	var err error
	lists(func(ps []int32) bool {
		for _, p := range ps {
			if p < 0 || int(p) >= n {
				err = fmt.Errorf("partition %d does not exist", p)
				return false
			}
			if seen[p] {
				err = fmt.Errorf("partition %d has two owners", p)
				return false
			}
			seen[p] = true
			count++
		}
		return true
	})
	if err == nil && count != n {
		err = fmt.Errorf("%d of %d partitions have an owner", count, n)
	}
	return err
}

// settle waits until every live member has a SyncGroup reply of one and the
// same generation above prev, with all partitions covered exactly once. It
// returns that generation and the time of the last reply.
func (g *classicGroup) settle(prev int32, limit time.Duration) (int32, time.Time, error) {
	timeout := time.NewTimer(limit)
	defer timer0(timeout)
	var last error = errors.New("members are in different generations")
	check := func() (int32, time.Time, bool) {
		var at time.Time
		gen := prev
		for _, x := range g.live {
			gen = max(gen, x.gen)
			if x.at.After(at) {
				at = x.at
			}
		}
		for _, x := range g.live {
			if x.gen != gen || gen <= prev {
				return 0, at, false
			}
		}
		last = coveredOnce(g.topic.parts, func(yield func([]int32) bool) {
			for _, x := range g.live {
				if !yield(x.parts) {
					return
				}
			}
		})
		return gen, at, last == nil
	}
	// All may have settled before the caller was told what it waited for.
	if len(g.events) == 0 {
		if gen, at, ok := check(); ok {
			return gen, at, nil
		}
	}
	for {
		select {
		case e := <-g.events:
			if e.err != nil {
				return 0, time.Time{}, e.err
			}
			if e.left {
				delete(g.live, e.idx)
				continue
			}
			if _, ok := g.live[e.idx]; !ok {
				continue
			}
			g.live[e.idx] = e
			if len(g.events) > 0 || e.gen <= prev {
				continue
			}
			if gen, at, ok := check(); ok {
				return gen, at, nil
			}
		case <-timeout.C:
			return 0, time.Time{}, fmt.Errorf("group %s: not stable after %v with %d members: %w", g.name, limit, len(g.live), last)
		}
	}
}

func timer0(t *time.Timer) { t.Stop() }

// form starts n members and waits for the stable group.
func (g *classicGroup) form(n int) (int32, error) {
	every := 20 * time.Millisecond
	if n > 200 {
		every = 100 * time.Millisecond
	}
	if err := g.begin(n, every, func(c *conn) { g.add(c) }); err != nil {
		return 0, err
	}
	gen, _, err := g.settle(-1, 60*time.Second)
	return gen, err
}
