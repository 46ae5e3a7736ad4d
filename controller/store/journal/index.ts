export {
  Journal,
  type Controllers,
  type JournalDependencies,
  type NewWork,
  type Versioned,
  type OpenWork,
} from "./journal.ts";
export { isTransient } from "./transient.ts";
export { WorkRun, type Attempt, type WorkEnd } from "./work-run.ts";
