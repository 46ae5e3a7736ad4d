import { AppError } from "../../../../common/errors.ts";

/** Verbs of POST whose URL names a path after them. */
const WITH_PATH: readonly string[] = ["index", "pull", "push", "tolocal"];
/** Verbs of POST whose URL ends with them. */
const WITHOUT_PATH: readonly string[] = ["export", "import"];

/**
 * The verb with which a path of `/fs` begins. Its endpoint has another spelling of that path, so the path names no
 * folder for uploads: a call with a mistake would succeed with another effect.
 */
export function verbIn(path: string): string | undefined {
  const [verb = ""] = path.split("/").filter((part) => part !== "" && part !== ".");
  return WITH_PATH.includes(verb) || WITHOUT_PATH.includes(verb) ? verb : undefined;
}

/** `AppError("invalid")` for a path that begins with a verb. */
export function refuseVerb(path: string): void {
  const verb = verbIn(path);
  if (verb === undefined) return;
  const form = WITHOUT_PATH.includes(verb) ? "takes no path" : `takes a path, as in /fs/${verb}/reports`;
  const text = `POST /fs/${verb} ${form}. A file in a folder /${verb} is written by PUT and read by GET.`;
  throw new AppError("invalid", text, { details: { verb } });
}
