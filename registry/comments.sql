-- The descriptions of all tables, columns, functions and views.

COMMENT ON TABLE snowflake_registry.fleet IS
    'the fleet; create_fleet() inserts the only row';
COMMENT ON COLUMN snowflake_registry.fleet.one IS
    'always true, so that the table has at most one row';
COMMENT ON COLUMN snowflake_registry.fleet.epoch IS
    'epoch of the layout in milliseconds since 1970-01-01 UTC';
COMMENT ON COLUMN snowflake_registry.fleet.low_bits IS
    'number of bits below the timestamp';
COMMENT ON COLUMN snowflake_registry.fleet.tick_us IS
    'length of a tick in microseconds';
COMMENT ON COLUMN snowflake_registry.fleet.life IS
    'number of the registry''s current life; it increases when the registry might have lost changes';
COMMENT ON COLUMN snowflake_registry.fleet.life_reason IS
    'why the current life began';
COMMENT ON COLUMN snowflake_registry.fleet.system_identifier IS
    'system identifier of the cluster in which the registry was last used';
COMMENT ON COLUMN snowflake_registry.fleet.timeline IS
    'timeline on which the registry was last used';
COMMENT ON COLUMN snowflake_registry.fleet.database_oid IS
    'OID of the database in which the registry was last used';
COMMENT ON COLUMN snowflake_registry.fleet.table_oid IS
    'OID of this table when the registry was last used; after a dump is restored, the table has a different OID';
COMMENT ON COLUMN snowflake_registry.fleet.quarantine_until IS
    'point in ID space at which the last quarantine ends, without the safety margin; 0 if there is none';
COMMENT ON COLUMN snowflake_registry.fleet.quarantine_before IS
    'value that quarantine_until had before the current quarantine; open() restores this value';
COMMENT ON COLUMN snowflake_registry.fleet.spare_until IS
    'point in ID space at which the last quarantine of the spare worker IDs ends, without the safety margin; 0 if there is none';
COMMENT ON COLUMN snowflake_registry.fleet.spare_before IS
    'value that spare_until had when the quarantine of the spare worker IDs was last known to have ended';
COMMENT ON COLUMN snowflake_registry.fleet.newest_seen IS
    'time of the last heartbeat, as a point in ID space, when the quarantine of the spare worker IDs was last known to have ended';
COMMENT ON COLUMN snowflake_registry.fleet.settled IS
    'timeline on which the quarantine of the spare worker IDs was last known to have ended, or NULL if there is none';
COMMENT ON COLUMN snowflake_registry.fleet.spare_closed IS
    'whether the common spare worker IDs are unavailable during the quarantine of the spare worker IDs';
COMMENT ON COLUMN snowflake_registry.fleet.mark IS
    'ID of the transaction that wrote this row; if the row has been restored, this ID differs from xmin';
COMMENT ON COLUMN snowflake_registry.fleet.floor IS
    'point in ID space below which no IDs are granted; create_fleet() and change_layout() set it';
COMMENT ON TABLE snowflake_registry.ring IS
    'one row for each datacenter ID: the worker IDs at which the next claim starts to search for a free one';
COMMENT ON TABLE snowflake_registry.node IS
    'the assigned worker IDs and their holders; do not delete rows, because the bounds in the rows prevent duplicate IDs';
COMMENT ON COLUMN snowflake_registry.node.holder IS
    'UUID of the witness of the server that holds the worker ID';
COMMENT ON COLUMN snowflake_registry.node.nonce IS
    'nonce of the last claim or renewal; it distinguishes a server from a clone of this server';
COMMENT ON COLUMN snowflake_registry.node.count IS
    'number of times that this worker ID was claimed or renewed';
COMMENT ON COLUMN snowflake_registry.node.life IS
    'life of the registry in which the last grant was made';
COMMENT ON COLUMN snowflake_registry.node.start IS
    'first ID that the holder can issue';
COMMENT ON COLUMN snowflake_registry.node.bound IS
    'last ID that the holder can issue';
COMMENT ON COLUMN snowflake_registry.node.about IS
    'information that the server reports about itself, limited to 16 keys';
COMMENT ON TABLE snowflake_registry.history IS
    'earlier holders of worker IDs; old rows can be deleted, because the registry never reads this table';
COMMENT ON COLUMN snowflake_registry.fleet.generation IS
    'highest generation that has been assigned to a tag';
COMMENT ON TABLE snowflake_registry.segment IS
    'the tags and their next numbers; do not change rows, because servers hold blocks of lower numbers';
COMMENT ON COLUMN snowflake_registry.segment.generation IS
    'number that distinguishes the tag from earlier tags with the same name';
COMMENT ON COLUMN snowflake_registry.segment.next_value IS
    'lowest number that is not in any block';
COMMENT ON COLUMN snowflake_registry.segment.step IS
    'minimum length of a block';
COMMENT ON COLUMN snowflake_registry.segment.max_step IS
    'maximum length of a block';
COMMENT ON COLUMN snowflake_registry.segment.top_nonce IS
    'nonce of the highest block';
COMMENT ON COLUMN snowflake_registry.segment.below_nonce IS
    'nonce of the block directly below the highest one, if the highest block can be returned as a whole';
COMMENT ON COLUMN snowflake_registry.segment.life IS
    'life of the registry in which the last block was taken; the next block starts above all numbers that later lives skip';
COMMENT ON COLUMN snowflake_registry.segment.begins_at IS
    'time at which the period of the tag begins, or NULL if the tag does not belong to a series';
COMMENT ON COLUMN snowflake_registry.segment.window_used IS
    'how many numbers were taken in the 10 minutes that began at window_start';
COMMENT ON TABLE snowflake_registry.skip IS
    'for each life of the registry, the number of 10-minute windows for which every tag skips numbers; open() sets it to 0';
COMMENT ON COLUMN snowflake_registry.skip.lost IS
    'value that column "windows" had before open() was called';
COMMENT ON COLUMN snowflake_registry.skip.quarantine IS
    'first life that began during the same quarantine as this life';
COMMENT ON TABLE snowflake_registry.hole IS
    'numbers that tags have skipped; old rows can be deleted, because the registry never reads this table';
COMMENT ON VIEW snowflake_registry.segments IS
    'one row for each tag: the next number, how many numbers are skipped before it, and the block sizes';
COMMENT ON VIEW snowflake_registry.holes IS
    'numbers that tags have skipped because the registry might have forgotten blocks that contain them';
COMMENT ON VIEW snowflake_registry.status IS
    'the fleet and its quarantine, with times instead of points in ID space';
COMMENT ON VIEW snowflake_registry.servers IS
    'one row for each assigned or reserved worker ID: the holder, the end of the grant, and the state (live, late, gone or reserved)';
COMMENT ON VIEW snowflake_registry.datacenters IS
    'one row for each datacenter ID: how many worker IDs are not spare, how many of these are in use, and how many are free';
COMMENT ON VIEW snowflake_registry.handovers IS
    'which server had which worker ID, and when; in the rows of current holders, "ended" is NULL';
COMMENT ON TYPE snowflake_registry.answer IS
    'answer to a request from a server';
COMMENT ON TYPE snowflake_registry.block IS
    'answer to a request for numbers of a tag';
COMMENT ON TYPE snowflake_registry.identity IS
    'values that identify the location of the registry; a change indicates a restore or a failover';
COMMENT ON TYPE snowflake_registry.division IS
    'how the worker IDs of a datacenter are divided into the ring, the common spare worker IDs and the slices';
COMMENT ON TYPE snowflake_registry.offer IS
    'worker IDs that the registry can assign in answer to a claim';
COMMENT ON TYPE snowflake_registry.free_worker IS
    'free worker ID, and the first ID that its next holder can issue';
COMMENT ON TYPE snowflake_registry.layout IS
    'parts of a layout';
COMMENT ON FUNCTION snowflake_registry.hello(uuid, text, bigint) IS
    'for servers: return the life of the registry and a new nonce';
COMMENT ON FUNCTION snowflake_registry.claim(uuid, text, bigint, integer, uuid, bigint, uuid, bigint, interval, jsonb) IS
    'for servers: request a worker ID';
COMMENT ON FUNCTION snowflake_registry.renew(uuid, text, bigint, integer, integer, uuid, bigint, bigint, uuid, uuid, bigint, bigint,
    bigint, interval, jsonb) IS
    'for servers: renew the grant for the worker ID that the server holds';
COMMENT ON FUNCTION snowflake_registry.take(uuid, text, uuid, bigint) IS
    'for servers: take a block of numbers from a tag';
COMMENT ON FUNCTION snowflake_registry.give_back(uuid, text, bigint, uuid, bigint, bigint) IS
    'for servers: return the unused numbers of a block';
COMMENT ON FUNCTION snowflake_registry.report(uuid, text[], bigint[], bigint[]) IS
    'for servers: report the blocks that the server holds, and return those that are still valid';
COMMENT ON FUNCTION snowflake_registry.begin_segment(uuid, text, timestamptz, bigint, bigint, bigint) IS
    'for servers: create the tag for a period of a series if it does not exist yet';
COMMENT ON FUNCTION snowflake_registry.recreate_segment(text, bigint, bigint, bigint) IS
    'change the block sizes or the next number of a tag by re-creating it; start and all higher numbers must be unused';
COMMENT ON FUNCTION snowflake_registry.create_segment(text, bigint, bigint, bigint, text, timestamptz) IS
    'create a tag whose first number is start, and return its generation; each block contains between step and max_step numbers';
COMMENT ON FUNCTION snowflake_registry.drop_segment(text) IS
    'drop a tag; if the tag is created again, its numbers can be issued again';
COMMENT ON FUNCTION snowflake_registry.create_fleet(text, timestamptz, timestamptz) IS
    'create the fleet with the given layout and epoch; IDs with a time before not_before are never granted';
COMMENT ON FUNCTION snowflake_registry.change_layout(text, timestamptz) IS
    'change the layout and the epoch, and return the time from which servers can issue IDs again';
COMMENT ON FUNCTION snowflake_registry.open() IS
    'end the quarantine; call this function only if the registry has not lost any changes since the quarantine began';
COMMENT ON FUNCTION snowflake_registry.close() IS
    'begin a quarantine without spare worker IDs, and return the time at which it ends; use this if the registry did not detect a restore';
COMMENT ON FUNCTION snowflake_registry.reserve(integer, integer) IS
    'reserve a worker ID for a database without the library, and return the lowest ID that the database may issue';
COMMENT ON FUNCTION snowflake_registry.release(integer, integer) IS
    'release a reserved worker ID, and return the time from which servers can get it; before the call, stop the database that uses it';
COMMENT ON FUNCTION snowflake_registry.lock_node(snowflake_registry.fleet, integer, integer) IS
    'internal: lock and return the row of a worker ID, for functions that the owner calls';
COMMENT ON FUNCTION snowflake_registry.grant_server(name) IS
    'allow a role to call the functions that servers use';
COMMENT ON FUNCTION snowflake_registry.sum_of(bigint, bigint) IS
    'internal: sum of a point and a span, limited to 2^63 - 1';
COMMENT ON FUNCTION snowflake_registry.time_of(bigint, bigint, integer, bigint) IS
    'internal: time that a point in ID space represents';
COMMENT ON FUNCTION snowflake_registry.time_of(snowflake_registry.fleet, bigint) IS
    'internal: time that a point in ID space represents';
COMMENT ON FUNCTION snowflake_registry.point_of(timestamptz, bigint, integer, integer, bigint) IS
    'internal: first ID of the tick that contains the given time';
COMMENT ON FUNCTION snowflake_registry.point_of(snowflake_registry.fleet, timestamptz) IS
    'internal: first ID of the tick that contains the given time';
COMMENT ON FUNCTION snowflake_registry.span_of(interval, integer, bigint) IS
    'internal: length of a duration, in IDs';
COMMENT ON FUNCTION snowflake_registry.span_of(snowflake_registry.fleet, interval) IS
    'internal: length of a duration, in IDs';
COMMENT ON FUNCTION snowflake_registry.margin(snowflake_registry.fleet) IS
    'internal: the margin of 10 minutes, expressed as a number of IDs';
COMMENT ON FUNCTION snowflake_registry.far(snowflake_registry.fleet) IS
    'internal: length of the longest lease plus two margins, in IDs';
COMMENT ON FUNCTION snowflake_registry.near(snowflake_registry.fleet) IS
    'internal: length of the longest lease of a spare worker ID plus two margins, in IDs';
COMMENT ON FUNCTION snowflake_registry.two_margins_above(snowflake_registry.fleet, bigint) IS
    'internal: a point plus two margins';
COMMENT ON FUNCTION snowflake_registry.start_above(snowflake_registry.fleet, bigint) IS
    'internal: lowest start of a grant above a point';
COMMENT ON FUNCTION snowflake_registry.division_of(integer) IS
    'internal: how the worker IDs of a layout are divided';
COMMENT ON FUNCTION snowflake_registry.same_tables(snowflake_registry.fleet, snowflake_registry.identity) IS
    'internal: whether these are the tables that the registry last used';
COMMENT ON FUNCTION snowflake_registry.as_written(snowflake_registry.fleet, xid) IS
    'internal: the row of the fleet, with a NULL mark if the row was restored';
COMMENT ON FUNCTION snowflake_registry.mark_fleet() IS
    'internal: mark the row of the fleet as written by this transaction';
COMMENT ON FUNCTION snowflake_registry.spare_quarantine_end(snowflake_registry.fleet) IS
    'internal: point in ID space at which the last quarantine of the spare worker IDs ends, including the safety margin';
COMMENT ON FUNCTION snowflake_registry.offer_of(snowflake_registry.fleet, bigint, integer) IS
    'internal: worker IDs that the registry can currently assign in answer to a claim';
COMMENT ON FUNCTION snowflake_registry.find_free(snowflake_registry.fleet, snowflake_registry.offer, integer, bigint) IS
    'internal: first free worker ID in an offer';
COMMENT ON FUNCTION snowflake_registry.why_none(snowflake_registry.answer, snowflake_registry.fleet, snowflake_registry.offer,
    integer, bigint, timestamptz) IS
    'internal: why no worker ID is available for a claim, and when one will be available';
COMMENT ON FUNCTION snowflake_registry.clock_of(snowflake_registry.fleet, bigint) IS
    'internal: part of a refusal that shows the clock of the server';
COMMENT ON FUNCTION snowflake_registry.store_claim(snowflake_registry.answer, snowflake_registry.fleet, uuid, interval, jsonb,
    timestamptz) IS
    'internal: store the grant that answers a claim';
COMMENT ON FUNCTION snowflake_registry.move_on(snowflake_registry.fleet, integer, bigint) IS
    'internal: make the next claim start its search at the worker ID that follows the given one';
COMMENT ON FUNCTION snowflake_registry.log_few_free(snowflake_registry.fleet, integer, bigint) IS
    'internal: write a log message if few worker IDs are free';
COMMENT ON FUNCTION snowflake_registry.latest_bound(snowflake_registry.fleet, bigint) IS
    'internal: latest bound that the registry can have granted';
COMMENT ON FUNCTION snowflake_registry.highest_count(snowflake_registry.fleet, bigint) IS
    'internal: highest count that the holder of a worker ID can have reached';
COMMENT ON FUNCTION snowflake_registry.implausible(snowflake_registry.fleet, bigint, bigint, bigint, bigint) IS
    'internal: whether a renewal contains values that the registry cannot have granted';
COMMENT ON FUNCTION snowflake_registry.lease_span(snowflake_registry.fleet, bigint, interval) IS
    'internal: length of the lease of a worker ID, in IDs';
COMMENT ON FUNCTION snowflake_registry.store_renewal(snowflake_registry.answer, snowflake_registry.fleet, snowflake_registry.node, uuid,
    interval, jsonb, timestamptz) IS
    'internal: store a renewal';
COMMENT ON FUNCTION snowflake_registry.lock_for_owner() IS
    'internal: lock and return the row of the fleet, for functions that the owner calls';
COMMENT ON FUNCTION snowflake_registry.convert_point(snowflake_registry.fleet, snowflake_registry.fleet, bigint) IS
    'internal: convert a point in the old layout to the point in the new layout that represents the same time';
COMMENT ON FUNCTION snowflake_registry.parse_layout(text) IS
    'internal: parts of a layout that is given as field widths';
COMMENT ON FUNCTION snowflake_registry.epoch_ms(timestamptz) IS
    'internal: an epoch in milliseconds since 1970-01-01 UTC';
COMMENT ON FUNCTION snowflake_registry.identity_now() IS
    'internal: current location of the registry';
COMMENT ON FUNCTION snowflake_registry.moved(snowflake_registry.fleet, snowflake_registry.identity) IS
    'internal: whether the registry has moved since it was last used';
COMMENT ON FUNCTION snowflake_registry.read_fleet() IS
    'internal: return the row of the fleet without locking it';
COMMENT ON FUNCTION snowflake_registry.commit_durably() IS
    'internal: make the COMMIT of this transaction wait for the standby, and show any warnings from that wait';
COMMENT ON FUNCTION snowflake_registry.lock_holders(interval) IS
    'internal: the sessions that have kept rows of the registry locked for at least the given time';
COMMENT ON FUNCTION snowflake_registry.end_sessions(text[]) IS
    'internal: terminate sessions that keep the registry locked';
COMMENT ON FUNCTION snowflake_registry.queue_for_fleet() IS
    'internal: wait until no other session has locked the row of the fleet';
COMMENT ON FUNCTION snowflake_registry.lock_fleet(boolean) IS
    'internal: lock and return the row of the fleet';
COMMENT ON FUNCTION snowflake_registry.quarantine_end(snowflake_registry.fleet) IS
    'internal: point in ID space at which the last quarantine ends, including the safety margin';
COMMENT ON FUNCTION snowflake_registry.in_quarantine(snowflake_registry.fleet, bigint) IS
    'internal: whether a point lies within the last quarantine';
COMMENT ON FUNCTION snowflake_registry.lost_windows(interval, bigint) IS
    'internal: number of windows in which servers might have taken numbers that the registry has forgotten';
COMMENT ON FUNCTION snowflake_registry.check_tag(text) IS
    'internal: raise an error unless a tag is 1 to 200 bytes long';
COMMENT ON FUNCTION snowflake_registry.check_array(text, anyarray, integer) IS
    'internal: raise an error unless an array has the given length and contains no nulls';
COMMENT ON FUNCTION snowflake_registry.enter(uuid, boolean) IS
    'internal: lock the row of the fleet, and begin a new life if the registry has moved';
COMMENT ON FUNCTION snowflake_registry.block_answer(snowflake_registry.fleet, uuid, text) IS
    'internal: the fields that every answer about the numbers of a tag contains';
COMMENT ON FUNCTION snowflake_registry.is_of_series(text) IS
    'internal: whether a tag belongs to a period of a series';
COMMENT ON FUNCTION snowflake_registry.check_begins_at(text, timestamptz) IS
    'internal: raise an error unless the tag belongs to a period and the time is a valid beginning of the period';
COMMENT ON FUNCTION snowflake_registry.lock_segment(text) IS
    'internal: lock the row of a tag, and return false if another session holds the lock';
COMMENT ON FUNCTION snowflake_registry.check_sizes(bigint, bigint, bigint) IS
    'internal: raise an error unless the first number and the block sizes of a tag are valid';
COMMENT ON FUNCTION snowflake_registry.insert_segment(snowflake_registry.fleet, text, bigint, bigint, bigint, bigint, timestamptz,
    timestamptz, text) IS
    'internal: create a tag';
COMMENT ON FUNCTION snowflake_registry.remove_segment(text) IS
    'internal: remove a tag, and return its former row';
COMMENT ON FUNCTION snowflake_registry.pending_skip(snowflake_registry.segment) IS
    'internal: how many numbers a tag skips before its next block';
COMMENT ON FUNCTION snowflake_registry.apply_skip(snowflake_registry.fleet, snowflake_registry.segment, bigint, timestamptz) IS
    'internal: skip numbers of a tag, and record the hole';
COMMENT ON FUNCTION snowflake_registry.latest_of(timestamptz, timestamptz) IS
    'internal: latest time that a recorded time can mean';
COMMENT ON FUNCTION snowflake_registry.begin_life(snowflake_registry.fleet, snowflake_registry.identity, bigint, timestamptz, text) IS
    'internal: begin a new life of the registry and a quarantine';
COMMENT ON FUNCTION snowflake_registry.clean_about(jsonb) IS
    'internal: limit the information that a server reports about itself';
COMMENT ON FUNCTION snowflake_registry.about_number(jsonb, text) IS
    'internal: the integer value of a key in the information that a server reports about itself';
COMMENT ON FUNCTION snowflake_registry.other_of(snowflake_registry.node) IS
    'internal: information about the holder of a worker ID, for an answer to another server';
COMMENT ON FUNCTION snowflake_registry.check_argument(text, boolean, text) IS
    'internal: raise an error unless an argument is valid';
COMMENT ON FUNCTION snowflake_registry.check_arguments(uuid, text, bigint, integer, uuid, bigint, uuid, bigint, interval, jsonb) IS
    'internal: check the arguments that claim() and renew() have in common';
COMMENT ON FUNCTION snowflake_registry.refusal(snowflake_registry.fleet, uuid, text, bigint, timestamptz) IS
    'internal: refusal of a request whose fleet, layout or epoch does not match the registry';
COMMENT ON FUNCTION snowflake_registry.lease_valid(interval) IS
    'internal: whether the length of a lease is between 10 minutes and 1 day';
COMMENT ON FUNCTION snowflake_registry.end_tenure(snowflake_registry.fleet, snowflake_registry.node, timestamptz, text) IS
    'internal: record that a server no longer holds a worker ID';
COMMENT ON FUNCTION snowflake_registry.knows_more(snowflake_registry.fleet, snowflake_registry.node, bigint, bigint) IS
    'internal: whether a renewal shows that the registry has lost changes';
