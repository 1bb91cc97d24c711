package group

// expireOffsets looks for offsets that nobody needs any more, from time to time, until the coordinator ends.
func (c *Coordinator) expireOffsets() {
	for {
		select {
		case <-c.life.Done():
			return
		case <-c.cfg.Clock.After(c.cfg.RetentionCheck):
		}
		c.ExpireNow()
	}
}

// ExpireNow deletes the offsets whose time is over, and groups of which nothing is left then. Groups with
// members keep everything.
func (c *Coordinator) ExpireNow() {
	retention := c.cfg.Retention.Milliseconds()
	for _, s := range c.all() {
		_ = s.do(func(now int64) {
			for _, e := range s.groups {
				if e.busy > 0 {
					continue // what is on its way to it may be news
				}
				expired := e.Expired(now, retention)
				switch {
				case e.Forgettable(len(expired)):
					s.bury(e, nil)
				case len(expired) > 0:
					s.forget(e, expired, nil)
				}
			}
		})
	}
}
