//! The profile of a method, for programs whose owners are no solver of ours.

use recoup_core::MethodProfile;

use super::step::Session;

impl Session {
    /// Gives the policy the numbers of a method. Only for owners that do not say so themselves:
    /// [`Session::step`] asks the solver.
    pub fn set_profile(&mut self, profile: MethodProfile) {
        self.decisions.profile = Some(profile);
    }
}
