import { useState } from "react";
import type { Schemas } from "../api/client";
import { Dialog } from "./Dialog";
import { count } from "./figures";

type Shown = Schemas["ShownPicture"];

/** Pictures of what is graded, each as large as a thumb until it is opened; never fetched from anywhere. */
export function Pictures({ pictures }: { pictures: readonly Shown[] }) {
  return (
    <ul className="m-0 flex list-none flex-wrap gap-4 p-0">
      {pictures.map((picture) => (
        <li key={picture.name}>
          <Picture picture={picture} />
        </li>
      ))}
    </ul>
  );
}

function Picture({ picture }: { picture: Shown }) {
  const [isOpen, setOpen] = useState(false);
  const { name, of, url, width, height } = picture;
  const kind = picture.media_type.replace("image/", "").toUpperCase();
  const alt = `${name}, ${of}: ${kind}, ${width} x ${height} pixels`;
  return (
    <figure className="m-0 grid max-w-60 gap-1">
      {url ? (
        <button
          type="button"
          aria-label={`Enlarge ${alt}`}
          onClick={() => setOpen(true)}
          className="w-fit cursor-zoom-in rounded-md border-0 bg-sunk p-2"
        >
          <img src={url} alt={alt} className="block max-h-40 max-w-56 object-contain" />
        </button>
      ) : (
        <p className="m-0 rounded-md bg-sunk p-4 text-soft">It is not in this file.</p>
      )}
      <figcaption className="text-sm text-soft wrap-anywhere">
        {name} · {of}
        <br />
        {kind}, {width} × {height}, {count(picture.size, "byte")}
        <br />
        <code title={picture.digest}>{picture.digest.slice(0, 12)}</code>
      </figcaption>
      {isOpen && (
        <Dialog title={`${name} · ${of}`} close={() => setOpen(false)} isWide>
          <img
            src={url}
            alt={alt}
            className="mx-auto block max-h-[75vh] max-w-full object-contain"
          />
        </Dialog>
      )}
    </figure>
  );
}
