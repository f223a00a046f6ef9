export type Json = string | number | boolean | null | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A copy with a member set; without it where the value is undefined. */
export function withMember(value: JsonObject, name: string, member: Json | undefined): JsonObject {
  if (member !== undefined) return { ...value, [name]: member };
  const { [name]: _, ...rest } = value;
  return rest;
}

/** Whether an option says where in the row it stands, instead of what it is. */
export function isFrom(value: Json | undefined): value is { from: Json } {
  return isObject(value) && "from" in value && Object.keys(value).length === 1;
}
