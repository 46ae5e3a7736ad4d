export {
  Journal,
  type Controllers,
  type JournalDependencies,
  type NewWork,
  type Noted,
  type OpenWork,
} from "./journal.ts";
export { isTransient } from "./transient.ts";
