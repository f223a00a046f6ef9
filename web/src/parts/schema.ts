import type { ComponentType } from "react";
import { isObject, type Json } from "./json";

/** As much of JSON Schema as definitions of graders use, and hints how a member is best shown. */
export interface Schema {
  type?: string;
  title?: string;
  description?: string;
  enum?: Json[];
  const?: Json;
  default?: Json;
  anyOf?: Schema[];
  oneOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: boolean | Schema;
  label?: string;
  placeholder?: string;
  /** Lines of a text that is written in several. */
  rows?: number;
  isCode?: boolean;
  /** Whether it is shown at once although it may be left out; the others fold. */
  isShown?: boolean;
  /** Places in a row that are offered, where it may come from there. */
  fromRow?: readonly string[];
  /** What is shown instead of what follows from the schema. */
  control?: ComponentType<MemberProps>;
}

export interface MemberProps {
  name: string;
  schema: Schema;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
  path: string;
  required: boolean;
}

const CAPITALS = /\b(url|usd|json|xml|id|na)\b/g;

export function labelOf(name: string): string {
  const words = name.replaceAll("_", " ").replace(CAPITALS, (word) => word.toUpperCase());
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

/** A schema that may be null as the one that it is otherwise: null is to leave it out. */
export function withoutNull(schema: Schema): Schema {
  const shapes = schema.anyOf;
  if (!shapes) return schema;
  const { anyOf: _, ...rest } = schema;
  const left = shapes.filter((shape) => shape.type !== "null");
  if (left.some((shape) => Object.keys(shape).length === 0)) return rest; // anything will do
  return left.length === 1 ? { ...left[0], ...rest } : { ...rest, anyOf: left };
}

export function tagOf(schema: Schema): string | undefined {
  return Object.entries(schema.properties ?? {}).find(([, one]) => one.const !== undefined)?.[0];
}

export function titleOf(schema: Schema): string {
  const tag = tagOf(schema);
  const named = tag && schema.properties?.[tag]?.const;
  if (schema.title || named) return schema.title ?? String(named);
  if (schema.enum) return schema.enum.map(String).join(" or ");
  const items = schema.items ? ` of ${titleOf(schema.items)}s` : "";
  return (schema.type ?? "JSON").replace("array", "list").replace("object", "mapping") + items;
}

export function fits(schema: Schema, value: Json | undefined): boolean {
  if (value === undefined) return false;
  const tag = tagOf(schema);
  if (tag) return isObject(value) && value[tag] === schema.properties?.[tag]?.const;
  if (schema.enum) return schema.enum.includes(value);
  if (schema.type === "array") return Array.isArray(value);
  if (schema.type === "object") return isObject(value);
  if (schema.type === "integer" || schema.type === "number") return typeof value === "number";
  return schema.type === undefined || typeof value === schema.type;
}

/** What a value of a schema begins as. */
export function blank(schema: Schema): Json {
  if (schema.default !== undefined && schema.default !== null) return schema.default;
  if (schema.const !== undefined) return schema.const;
  const shape = schema.anyOf?.[0] ?? schema;
  if (shape.enum) return shape.enum[0] ?? null;
  if (shape.type === "object") {
    const tag = tagOf(shape);
    return tag ? { [tag]: shape.properties?.[tag]?.const ?? "" } : {};
  }
  if (shape.type === "array") return [];
  if (shape.type === "boolean") return false;
  if (shape.type === "integer" || shape.type === "number") return 0;
  return "";
}
