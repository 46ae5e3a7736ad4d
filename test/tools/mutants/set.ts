/** Changes of each file of the set. */
export const SET_CHANGES_PER_FILE = 3;
export const SET_SEED = "1";

/**
 * Files whose near tests are measured from time to time by the same changes (`npm run mutants -- --set`): checks of
 * rights, code that must not lose data or act twice, and the engines below. Rename a renamed file here, but do not
 * exchange files, so that figures of two versions can be compared.
 */
export const SET_FILES: readonly string[] = [
  "controller/areas/permissions/access.ts",
  "controller/areas/permissions/current.ts",
  "controller/areas/permissions/shared.ts",
  "controller/areas/groups/compile.ts",
  "controller/areas/users/sessions/sessions.ts",
  "controller/areas/users/sessions/tokens.ts",
  "controller/areas/users/rights/effective-rights.ts",
  "controller/areas/users/credentials/slowdown.ts",
  "controller/http/connections/origin.ts",
  "controller/http/calls/open-calls.ts",
  "controller/areas/audit/chain.ts",
  "controller/areas/audit/verify.ts",
  "controller/areas/audit/service.ts",
  "controller/areas/notifications/rights.ts",
  "controller/areas/hosts/commands/commands.ts",
  "controller/areas/ingest/pins.ts",
  "controller/areas/ingest/batches.ts",
  "controller/areas/ingest/records.ts",
  "agent/outbox/outbox.ts",
  "agent/outbox/reader.ts",
  "agent/plugins/log-policy/followed.ts",
  "agent/plugins/log-policy/reading.ts",
  "controller/areas/jobs/schedule/scheduler.ts",
  "controller/areas/triggers/run.ts",
  "controller/areas/query/plan/pushdown.ts",
  "controller/areas/query/run/groups.ts",
  "controller/areas/query/run/fill.ts",
  "controller/store/embedded/entities/entities.ts",
  "controller/store/embedded/records/records.ts",
  "controller/store/journal/journal.ts",
];
