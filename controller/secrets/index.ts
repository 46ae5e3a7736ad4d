export { openSecretKey } from "./key-file.ts";
export { secretBox, type SecretBox } from "./secret-box.ts";
