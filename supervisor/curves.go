package supervisor

import "potato/api"

// maxPoints is how many points a curve has at most: more than a screen is wide. Past it every second one is dropped.
const maxPoints = 4000

// curves gathers metric events by what they measure, in the order of their first appearance.
type curves struct {
	at  map[curveKey]int
	all []*curve
}

type curveKey struct {
	schema, split, name string
	attempt             int
}

type curve struct {
	api.Curve
	every, seen int
}

func newCurves() *curves { return &curves{at: map[curveKey]int{}} }

func (c *curves) add(e api.Event) {
	if e.Event != api.EventMetric || e.Value == nil {
		return
	}
	key := curveKey{e.Schema, e.Split, e.Name, max(e.Attempt, 1)}
	i, ok := c.at[key]
	if !ok {
		i = len(c.all)
		c.at[key] = i
		c.all = append(c.all, &curve{every: 1, Curve: api.Curve{Schema: e.Schema, Split: e.Split, Name: e.Name, Attempt: key.attempt}})
	}
	c.all[i].add(e)
}

func (c *curve) add(e api.Event) {
	step := float64(c.seen)
	if n, ok := e.Step.(float64); ok {
		step = n
	}
	c.seen++
	if (c.seen-1)%c.every != 0 {
		return
	}
	c.Points = append(c.Points, api.Point{Step: step, Value: *e.Value, T: e.T})
	if len(c.Points) <= maxPoints {
		return
	}
	kept := c.Points[:0]
	for i := 0; i < len(c.Points); i += 2 {
		kept = append(kept, c.Points[i])
	}
	c.Points, c.every = kept, c.every*2
}

func (c *curves) list() []api.Curve {
	list := make([]api.Curve, len(c.all))
	for i, one := range c.all {
		list[i] = one.Curve
	}
	return list
}
