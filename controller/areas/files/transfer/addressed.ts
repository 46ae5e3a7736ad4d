import type { Static } from "typebox";
import type { FilePath } from "../../../../common/api/files.ts";
import type { FileName, Space } from "../names.ts";

export function spaceOf(issys: boolean | undefined): Space {
  return issys ? "system" : "user";
}

export function fileName({ "*": path, issys }: Static<typeof FilePath>): FileName {
  return { path, space: spaceOf(issys) };
}
