package main

import "fmt"

// branch is !If: only the side that is taken is resolved.
func (s *scope) branch(arg any, depth int) (any, error) {
	list, _ := arg.([]any)
	if len(list) != 3 {
		return nil, fmt.Errorf("it wants a condition and two values")
	}
	name, _ := list[0].(string)
	yes, err := s.condition(name, depth+1)
	if err != nil {
		return nil, err
	}
	if yes {
		return s.value(list[1], depth+1)
	}
	return s.value(list[2], depth+1)
}

// condition evaluates a named condition.
func (s *scope) condition(name string, depth int) (bool, error) {
	v, ok := s.template.conditions[name]
	if !ok {
		return false, fmt.Errorf("no condition %q", name)
	}
	return s.isTrue(v, depth+1)
}

func (s *scope) isTrue(v any, depth int) (bool, error) {
	// {Condition: Name} is the long form of !Condition Name.
	if name, ok := mapping(v)["Condition"].(string); ok {
		v = call{name: "Condition", arg: name}
	}
	one, err := s.value(v, depth)
	if err != nil {
		return false, err
	}
	yes, ok := one.(bool)
	if !ok {
		return false, fmt.Errorf("%v is neither true nor false", one)
	}
	return yes, nil
}

func (s *scope) truth(c call, depth int) (any, error) {
	if name, ok := c.arg.(string); ok && c.name == "Condition" {
		return s.condition(name, depth+1)
	}
	list, _ := c.arg.([]any)
	if c.name == "Equals" {
		if len(list) != 2 {
			return nil, fmt.Errorf("it wants two values")
		}
		left, err := s.text(list[0], depth)
		if err != nil {
			return nil, err
		}
		right, err := s.text(list[1], depth)
		return left == right, err
	}
	if len(list) == 0 || c.name == "Not" && len(list) != 1 {
		return nil, fmt.Errorf("it wants conditions")
	}
	all, some := true, false
	for _, item := range list {
		yes, err := s.isTrue(item, depth+1)
		if err != nil {
			return nil, err
		}
		all, some = all && yes, some || yes
	}
	switch c.name {
	case "Not":
		return !all, nil
	case "And":
		return all, nil
	}
	return some, nil
}
