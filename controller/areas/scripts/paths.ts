import { isInside, relativePath } from "../../../common/paths.ts";
import type { FileName, RunNames } from "../files/index.ts";
import { STARTUP_SCRIPTS } from "./startup.ts";

/** Folder of the file space that contains all scripts. */
const FOLDER = "/script";
/** Namespace of platform scripts in calls, independent of the tenant's own namespace. */
const PLATFORM = "/matrix/";

/** Paths below `/script` at which a script may be, in the order in which they are tried. */
export function candidates(path: string, ospace: string): readonly string[] {
  const wanted = normalized(path);
  return wanted.startsWith(PLATFORM) && ospace !== PLATFORM.slice(0, -1)
    ? [wanted, `${ospace}/${wanted.slice(PLATFORM.length)}`]
    : [wanted];
}

/** Converts a script path to a path of the file space. */
export function filePath(path: string): string {
  return `${FOLDER}${path}`;
}

/** Converts a path of the file space to a script path. */
export function scriptPath(fullname: string): string {
  return fullname.slice(FOLDER.length);
}

/** Built-in script text for that path, which must be below the ospace; `undefined` if there is none. */
export function startUpScript(path: string, ospace: string): string | undefined {
  return isInside(ospace, path) ? STARTUP_SCRIPTS.get(path.slice(ospace.length)) : undefined;
}

/**
 * Spaces in which a script is searched: the users' first for calls, the system's first for a `require` of a system
 * script, or the system's only if the caller named it.
 */
export type SpaceOrder = "users first" | "system first" | "system";

/** Candidate files for the first existing script among these paths, in the order in which they are tried. */
export function fileNames(paths: readonly string[], ospace: string, order: SpaceOrder): readonly FileName[] {
  const inSpace = (space: FileName["space"]) => (path: string) => ({ path: filePath(path), space });
  const system = paths.map(inSpace("system"));
  if (order === "system") return system;
  // Every user runs these at start-up: no file of the users' space may take precedence over one of the system's.
  const isStartUp = paths.some((path) => startUpScript(path, ospace) !== undefined);
  if (order === "system first" || isStartUp) return [...system, ...paths.map(inSpace("user"))];
  return paths.flatMap((path) => [inSpace("user")(path), inSpace("system")(path)]);
}

/** Alternative names of scripts besides their paths: in the platform's namespace, and without `.js` in `require`. */
export const SCRIPT_NAMES: RunNames = {
  alsoHidden: (ospace, fullname) => {
    if (!isInside(FOLDER, fullname)) return [];
    const platform = filePath(PLATFORM.slice(0, -1));
    const own = isInside(platform, fullname) ? [filePath(ospace) + fullname.slice(platform.length)] : [];
    const all = [fullname, ...own];
    const bare = all.filter((path) => path.endsWith(".js")).map((path) => path.slice(0, -".js".length));
    return [...own, ...bare].filter((path) => path !== fullname);
  },
  builtIn: (ospace) => Array.from(STARTUP_SCRIPTS.keys(), (path) => filePath(ospace + path)),
};

/** A path that does not begin with / is relative to the requiring file; `.js` may be omitted. */
export function requiredPaths(path: string, from: string): readonly string[] {
  const whole = path.startsWith("/") ? path : `${from.slice(0, from.lastIndexOf("/"))}/${path}`;
  const steps: string[] = [];
  for (const step of whole.split("/")) {
    if (step === "..") steps.pop();
    else if (step !== "." && step !== "") steps.push(step);
  }
  const found = `/${steps.join("/")}`;
  return found.endsWith(".js") ? [found] : [`${found}.js`, found];
}

/** A text is a path if it is one line that looks like a path. */
export function isPath(text: string): boolean {
  return /^\s*\/[^\s;(){}=*'"`]+\.js\s*$/.test(text);
}

function normalized(path: string): string {
  const below = `/${relativePath(path.trim().replace(/^\/+/, ""))}`;
  return below.startsWith(`${FOLDER}/`) ? below.slice(FOLDER.length) : below;
}
