//! How the errors of all features are raised, and which of them a server can have that issues no IDs. The text of an error is in the
//! file of its feature.

use crate::message::argument::ArgumentProblem;
use crate::message::clock::ClockProblem;
use crate::message::conceal::ConcealProblem;
use crate::message::fleet::FleetProblem;
use crate::message::id::IdProblem;
use crate::message::issue::IssueProblem;
use crate::message::layout::LayoutProblem;
use crate::message::mark::{MarkProblem, SetMarkProblem};
use crate::message::partition::PartitionProblem;
use crate::message::report::Report;
use crate::message::serial::SerialProblem;
use crate::message::serial_at_commit::NumberProblem;
use crate::message::worker_id::WorkerIdProblem;

/// Declares [`Error`] with the problems of several features.
macro_rules! error {
    ($($feature:ident($problem:ident)),*) => {
        /// Why a server issues no IDs, or does not start.
        #[derive(Clone, Debug)]
        pub enum Error {
            $($feature($problem)),*
        }

        impl Error {
            /// Returns the text of the error.
            pub fn report(&self) -> Report {
                match self {
                    $(Error::$feature(problem) => problem.report()),*
                }
            }
        }

        $(impl From<$problem> for Error {
            fn from(problem: $problem) -> Error {
                Error::$feature(problem)
            }
        })*
    };
}

error!(
    Clock(ClockProblem),
    Fleet(FleetProblem),
    Issue(IssueProblem),
    Layout(LayoutProblem),
    Mark(MarkProblem),
    WorkerId(WorkerIdProblem)
);

/// Lets problems be raised.
macro_rules! raise {
    ($($problem:ident),*) => {$(
        impl $problem {
            /// Raises the error as an ERROR.
            #[cold]
            pub fn raise(self) -> ! {
                self.report().raise()
            }
        }
    )*};
}

raise!(ArgumentProblem, ClockProblem, ConcealProblem, Error, FleetProblem, IdProblem, IssueProblem, LayoutProblem);
raise!(MarkProblem, NumberProblem, PartitionProblem, SerialProblem, SetMarkProblem);
