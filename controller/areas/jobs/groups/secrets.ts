import type { SecretBox } from "../../../secrets/index.ts";
import type { GroupName, StoredGroupHost } from "./store.ts";

/** The server to which the secret of a group's host is sent. */
export type Place = Pick<StoredGroupHost, "host" | "proxy" | "port" | "username">;

export interface SecretOwner {
  readonly tenant: string;
  readonly group: GroupName;
}

export function placeText({ host, proxy, port, username }: Place): string {
  return JSON.stringify([host, proxy, port, username]);
}

export function sealPassword(secrets: Pick<SecretBox, "seal">, owner: SecretOwner, of: PlacedPassword): string {
  return secrets.seal(of.password, passwordContext(owner, of.place));
}

interface PlacedPassword {
  readonly place: Place;
  /** The password, or a private key in PEM. */
  readonly password: string;
}

/**
 * Context for sealing. It binds the password to its server: if the group is changed to another server, the stored
 * password cannot be opened.
 */
export function passwordContext({ tenant, group: { gtype, name } }: SecretOwner, place: Place): string {
  return `${tenant}/group/${JSON.stringify([gtype, name])} for ${placeText(place)}`;
}
