// A KIP-848 group: one goroutine and one connection per member.
package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func newMemberID() string {
	var b [16]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

type gEvent struct {
	idx   int
	epoch int32
	owned []int32
	at    time.Time
	left  bool
	err   error
}

type consumerGroup struct {
	group[*consumerMember, gEvent]
}

type consumerMember struct {
	g       *consumerGroup
	idx     int
	c       *conn
	id      string
	epoch   int32
	owned   []int32
	ack     bool // owned changed: report it in the next heartbeat, at once
	kick    chan bool
	joinRTT time.Duration
	started time.Time
}

func newConsumerGroup(addr string, vers versions, name string, t topic) *consumerGroup {
	return &consumerGroup{group[*consumerMember, gEvent]{name: name, topic: t, addr: addr, vers: vers,
		events: make(chan gEvent, 1<<18), stop: make(chan struct{}), live: map[int]gEvent{}}}
}

func (m *consumerMember) link() **conn { return &m.c }

func (g *consumerGroup) add(c *conn) *consumerMember {
	m := &consumerMember{g: g, idx: len(g.ms), c: c, id: newMemberID(), kick: make(chan bool, 1)}
	g.ms = append(g.ms, m)
	g.live[m.idx] = gEvent{idx: m.idx, epoch: -1}
	return m
}

func (m *consumerMember) request(join bool) *kmsg.ConsumerGroupHeartbeatRequest {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch = m.g.name, m.id, m.epoch
	if join || m.epoch == 0 {
		// Epoch 0 is a join, also when a broker left a member at 0 (the mock
		// does while its partitions are with others): send everything.
		req.MemberEpoch = 0
		req.RebalanceTimeoutMillis = 60000
		req.SubscribedTopicNames = []string{m.g.topic.name}
		// An empty regex next to the names, as librdkafka sends it: its mock
		// broker asserts that both are set or neither.
		req.SubscribedTopicRegex = kmsg.StringPtr("")
		req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	} else if m.ack {
		req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		if len(m.owned) > 0 {
			t := kmsg.NewConsumerGroupHeartbeatRequestTopic()
			t.TopicID, t.Partitions = m.g.topic.id, m.owned
			req.Topics = append(req.Topics, t)
		}
	}
	return req
}

func (m *consumerMember) heartbeat(join bool) error {
	t0 := time.Now()
	r, err := m.c.call(m.request(join))
	at := time.Now()
	if err != nil {
		return err
	}
	m.g.heartbeats.Add(1)
	resp := r.(*kmsg.ConsumerGroupHeartbeatResponse)
	if resp.ErrorCode != 0 {
		msg := ""
		if resp.ErrorMessage != nil {
			msg = *resp.ErrorMessage
		}
		return fmt.Errorf("%w %s", kerrf("ConsumerGroupHeartbeat", resp.ErrorCode), msg)
	}
	if join {
		m.joinRTT = at.Sub(t0)
		m.started = t0
		if resp.MemberID != nil && *resp.MemberID != "" {
			if m.c.vers[68][1] >= 1 && *resp.MemberID != m.id {
				return fmt.Errorf("broker changed the member id %q to %q", m.id, *resp.MemberID)
			}
			m.id = *resp.MemberID
		}
	}
	changed := join || resp.MemberEpoch != m.epoch
	m.epoch, m.ack = resp.MemberEpoch, false
	if resp.Assignment != nil {
		var ps []int32
		for _, t := range resp.Assignment.Topics {
			if t.TopicID != m.g.topic.id {
				return fmt.Errorf("assignment names topic id %x", t.TopicID)
			}
			ps = append(ps, t.Partitions...)
		}
		slices.Sort(ps)
		if !slices.Equal(ps, m.owned) {
			m.owned, m.ack, changed = ps, true, true
		}
	}
	if changed {
		m.g.events <- gEvent{idx: m.idx, epoch: m.epoch, owned: m.owned, at: at}
	}
	return nil
}

func (m *consumerMember) start() {
	m.g.wg.Add(1)
	go func() {
		defer m.g.wg.Done()
		if err := m.run(); err != nil {
			select {
			case <-m.g.stop:
			default:
				m.g.events <- gEvent{idx: m.idx, err: fmt.Errorf("group %s member %d: %w", m.g.name, m.idx, err)}
			}
		}
	}()
}

func (m *consumerMember) run() error {
	if err := m.heartbeat(true); err != nil {
		return err
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	// Every member keeps its own random phase (see classicMember.run).
	phase := func(every int64) time.Time {
		if every <= 0 {
			return time.Now()
		}
		return time.Now().Add(-time.Duration(mrand.Int64N(every)))
	}
	next := phase(m.g.hbEvery.Load())
	paused := false
	for {
		for m.ack {
			if err := m.heartbeat(false); err != nil {
				return err
			}
		}
		every := time.Duration(m.g.hbEvery.Load())
		var d time.Duration
		if every > 0 {
			if paused {
				paused, next = false, phase(int64(every))
			}
			next = next.Add(every)
			if now := time.Now(); next.Before(now) {
				next = now
			}
			d = time.Until(next)
		} else {
			d, paused = 25*time.Millisecond, true // paused: look again for the restart
		}
		timer.Reset(d)
		select {
		case <-m.g.stop:
			return nil
		case k := <-m.kick:
			if !k {
				return m.leave()
			}
			next = phase(m.g.hbEvery.Load())
		case <-timer.C:
		}
		if m.g.hbEvery.Load() == 0 || paused {
			continue
		}
		if err := m.heartbeat(false); err != nil {
			return err
		}
	}
}

func (m *consumerMember) leave() error {
	m.epoch = -1
	m.ack = false
	r, err := m.c.call(m.request(false))
	if err != nil {
		return err
	}
	resp := r.(*kmsg.ConsumerGroupHeartbeatResponse)
	if resp.ErrorCode != 0 {
		return kerrf("ConsumerGroupHeartbeat (leave)", resp.ErrorCode)
	}
	m.g.events <- gEvent{idx: m.idx, left: true, at: time.Now()}
	return nil
}

// settle waits until all live members have the same epoch above prev, together
// own every partition exactly once, and no member owns fewer than lo or more
// than hi: then all have reached their target. It returns the epoch and the
// time of the last change.
func (g *consumerGroup) settle(prev int32, lo, hi int, limit time.Duration) (int32, time.Time, error) {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	var why error = errors.New("members are in different epochs")
	check := func() (int32, time.Time, bool) {
		var at time.Time
		epoch := int32(-1)
		for _, x := range g.live {
			if epoch == -1 {
				epoch = x.epoch
			}
			if x.epoch != epoch || x.epoch <= prev {
				why = fmt.Errorf("members are in different epochs (%d, %d; before: %d)", x.epoch, epoch, prev)
				return 0, at, false
			}
			if x.at.After(at) {
				at = x.at
			}
		}
		for _, x := range g.live {
			if len(x.owned) < lo || len(x.owned) > hi {
				why = fmt.Errorf("member %d owns %d partitions, wanted %d to %d", x.idx, len(x.owned), lo, hi)
				return 0, at, false
			}
		}
		why = coveredOnce(g.topic.parts, func(yield func([]int32) bool) {
			for _, x := range g.live {
				if !yield(x.owned) {
					return
				}
			}
		})
		return epoch, at, why == nil
	}
	// All may have settled before the caller was told what it waited for.
	if len(g.events) == 0 {
		if ep, at, ok := check(); ok {
			return ep, at, nil
		}
	}
	for {
		select {
		case e := <-g.events:
			if err := g.note(e); err != nil {
				return 0, time.Time{}, err
			}
			if len(g.events) > 0 {
				continue
			}
			if ep, at, ok := check(); ok {
				return ep, at, nil
			}
		case <-timeout.C:
			return 0, time.Time{}, fmt.Errorf("group %s: not at its target after %v with %d members: %w", g.name, limit, len(g.live), why)
		}
	}
}

// note keeps the event of a member that is live.
func (g *consumerGroup) note(e gEvent) error {
	if e.err != nil {
		return e.err
	}
	if e.left {
		delete(g.live, e.idx)
	} else if _, ok := g.live[e.idx]; ok {
		g.live[e.idx] = e
	}
	return nil
}

func (g *consumerGroup) form(n int, every time.Duration) (int32, error) {
	if err := g.begin(n, every, func(c *conn) { g.add(c) }); err != nil {
		return 0, err
	}
	lo := g.topic.parts / n
	hi := (g.topic.parts + n - 1) / n
	ep, _, err := g.settle(0, lo, hi, 60*time.Second)
	return ep, err
}
