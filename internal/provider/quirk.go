package provider

// correct puts right what a vendor counts in another way than the rest.
func (v *Vendor) correct(u *Usage, t *tokens) {
	if v.ThoughtsBeside && t.has(fInput) && t.has(fOutput) && t.has(fTotal) {
		if rest := t.n[fTotal] - t.n[fInput] - t.n[fOutput]; rest > 0 && u.Output == t.n[fOutput] {
			u.Output += rest
			u.Reasoning = max(u.Reasoning, rest)
		}
	}
	if v.ReportsCost && u.Quality != usageUnknown {
		u.Reported = t.charge.charge()
	}
}
