//! Raises the errors of all features and lists the errors that keep a server from issuing IDs. The text of each error
//! is in the file for its feature.

use crate::message::argument::ArgumentProblem;
use crate::message::clock::ClockProblem;
use crate::message::conceal::ConcealProblem;
use crate::message::fleet::FleetProblem;
use crate::message::id::IdProblem;
use crate::message::issue::IssueProblem;
use crate::message::layout::LayoutProblem;
use crate::message::mark::{MarkProblem, SetMarkProblem};
use crate::message::partition::PartitionProblem;
use crate::message::preload::NotPreloaded;
use crate::message::report::Report;
use crate::message::serial::SerialProblem;
use crate::message::serial_at_commit::NumberProblem;
use crate::message::worker_id::WorkerIdProblem;

/// Declares [`Error`], which combines the problems of several features.
macro_rules! error {
    ($($feature:ident($problem:ident)),*) => {
        /// Why a server does not issue IDs or does not start.
        #[derive(Clone, Debug)]
        pub enum Error {
            $($feature($problem)),*
        }

        impl Error {
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

/// Implements `raise` for the problem types.
macro_rules! raise {
    ($($problem:ident),*) => {$(
        impl $problem {
            /// Raises an ERROR.
            #[cold]
            pub fn raise(self) -> ! {
                self.report().raise()
            }
        }
    )*};
}

raise!(ArgumentProblem, ClockProblem, ConcealProblem, Error, FleetProblem, IdProblem, IssueProblem, LayoutProblem);
raise!(MarkProblem, NotPreloaded, NumberProblem, PartitionProblem, SerialProblem, SetMarkProblem);
