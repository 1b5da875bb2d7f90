package policy

// A CronScaler asks for replicas by the clock.
//
// +kubebuilder:validation:XValidation:rule="self.mode == 'InWindow' || (has(self.policies) && size(self.policies) > 0)",message="policies: must have at least one, unless mode is InWindow"
// +kubebuilder:validation:XValidation:rule="self.mode != 'InWindow' || (has(self.windows) && size(self.windows) > 0)",message="windows: must have at least one in mode InWindow"
// +kubebuilder:validation:XValidation:rule="self.mode != 'InWindow' || !has(self.policies) || size(self.policies) == 0",message="policies: must be empty in mode InWindow"
// +kubebuilder:validation:XValidation:rule="self.mode == 'InWindow' || !has(self.windows) || size(self.windows) == 0",message="windows: must be empty unless mode is InWindow"
// +kubebuilder:validation:XValidation:rule="self.mode == 'InWindow' || !has(self.outside) || self.outside == 0",fieldPath=".outside",messageExpression="'%d: must be 0 unless mode is InWindow'.format([self.outside])"
type CronScaler struct {
	// Mode says how schedules determine the count. HoldLast: the policy that fired last decides until another one
	// fires. Match: a policy decides during the minute in which it fires, and nothing decides in between, as in Kaito's
	// proposal. InWindow: a window decides from its start to its end, and the field outside at all other times.
	// +optional
	// +kubebuilder:default=HoldLast
	// +kubebuilder:validation:Enum=HoldLast;Match;InWindow
	Mode string `json:"mode,omitempty"`

	// Policies are the schedules of modes HoldLast and Match.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Policies []CronPolicy `json:"policies,omitempty"`

	// Windows are the windows of mode InWindow.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Windows []CronWindow `json:"windows,omitempty"`

	// Outside is the count outside all windows in mode InWindow. The default of 0 results in minReplicas, as every
	// count is clamped to the bounds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	Outside int32 `json:"outside,omitempty"`
}

// A CronPolicy asks for a count at the times of a schedule.
type CronPolicy struct {
	// Name is the unique name of the policy.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9_. -]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// Schedule is a cron expression of five fields, or @yearly, @annually, @monthly, @weekly, @daily, @midnight or
	// @hourly.
	Schedule CronSchedule `json:"schedule"`

	// TargetReplicas is the replica count that the policy asks for.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	TargetReplicas int32 `json:"targetReplicas"`

	// TimeZone is the time zone of the schedule.
	// +optional
	// +kubebuilder:default=Etc/UTC
	TimeZone TimeZone `json:"timeZone,omitempty"`
}

// A CronWindow asks for a count from each start to the next end.
//
// +kubebuilder:validation:XValidation:rule="self.start != self.end",fieldPath=".end",message="must not be the same times as start"
type CronWindow struct {
	// Name is the unique name of the window.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9_. -]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// Start is the schedule by which the window opens.
	Start CronSchedule `json:"start"`

	// End is the schedule by which the window closes. If its hour is before that of the start, the window ends on the
	// next day.
	End CronSchedule `json:"end"`

	// TargetReplicas is the replica count while the window is open.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be a whole number"
	TargetReplicas int32 `json:"targetReplicas"`

	// TimeZone is the time zone of both schedules.
	// +optional
	// +kubebuilder:default=Etc/UTC
	TimeZone TimeZone `json:"timeZone,omitempty"`
}

// A CronSchedule is a cron expression. The pattern is its shape; whether it is one that fires is checked by the
// webhook, and by the controller.
//
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:Pattern=`^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|[0-9A-Za-z*/,?-]+([ \t]+[0-9A-Za-z*/,?-]+){4})$`
type CronSchedule string

// A TimeZone is a name of the time zone database, as America/New_York.
//
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9+_-]*(/[A-Za-z0-9+_-]+){0,2}$`
// +kubebuilder:validation:XValidation:rule="!(self in ['Local', 'localtime'])",messageExpression="'must not be ' + self + ', which differs between machines'"
type TimeZone string
