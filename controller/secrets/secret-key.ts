import { parseSecretKeys } from "../../common/secret-key.ts";
import { openSecretKey } from "./key-file.ts";
import { secretKeyOfCommand, type KeyCommandWorld } from "./key-command.ts";
import { secretBox, type KeyRing } from "./key-ring.ts";

/** Source of the keys that seal secrets. It is never the store. */
export type KeySource =
  | { readonly kind: "file"; readonly file: string; readonly create: boolean }
  /** The value of a setting: the lines of a key file, separated by line breaks or commas. */
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "command"; readonly command: string };

export async function secretsOf(source: KeySource, world: KeyCommandWorld): Promise<KeyRing> {
  switch (source.kind) {
    case "file":
      return openSecretKey(source);
    case "text":
      return secretBox(parseSecretKeys(source.text.replaceAll(",", "\n"), "The setting secret_key (ODP_SECRET_KEY)"));
    case "command":
      return secretKeyOfCommand({ ...source, ...world });
  }
}
