package admin

// hasModels tells whether there are virtual models to show.
func (a *Admin) hasModels() bool { return false }
