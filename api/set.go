package api

// Set sets a field to the value of a patch. If value is nil, the field stays as it is.
func Set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}
