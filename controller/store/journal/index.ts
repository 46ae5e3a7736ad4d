export {
  Journal,
  type Controllers,
  type JournalDependencies,
  type NewWork,
  type Versioned,
  type OpenWork,
} from "./journal.ts";
export { isTransient } from "./transient.ts";
