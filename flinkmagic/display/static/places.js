// Where a view (`View`, of the file before this one) is in the page. A notebook is saved without its widgets' states, so an output that holds a widget
// reopens as an error once the kernel is gone. Therefore an output may hold a picture instead, marked as the view's
// place: as long as the model lives, the view is shown there, and the picture is what is saved.

class Places {
  constructor(model) {
    this.model = model;
    this.places = document.getElementsByClassName(model.get("_place"));
    this.standing = new Map(); // from a place in the page to its view and the picture that the view covers
    this.watcher = new MutationObserver(() => this.fill());
    this.watcher.observe(document.body, { childList: true, subtree: true });
    this.fill();
  }

  /** Show a view in each place that has none. */
  fill() {
    for (const place of this.places) {
      // Another manager of the kernel's widgets (a console's, for example) may have a model of the same widget.
      if (this.standing.has(place) || place.querySelector(".flinkmagic-view")) continue;
      const view = this.homeless() ?? this.makeView();
      this.standing.set(place, { view, picture: [...place.childNodes] });
      place.replaceChildren(view.root);
    }
  }

  /** A view whose place was taken out of the page, as when the output got a newer picture. */
  homeless() {
    for (const [place, { view, picture }] of this.standing) {
      if (place.isConnected) continue;
      this.standing.delete(place);
      place.replaceChildren(...picture); // a cell that was scrolled out of sight comes back
      return view;
    }
    return null;
  }

  makeView() {
    const view = new View(this.model);
    requestAnimationFrame(() => view.start());
    return view;
  }

  /** Uncover the pictures. */
  leave() {
    this.watcher.disconnect();
    for (const [place, { view, picture }] of this.standing) {
      view.stop();
      place.replaceChildren(...picture);
    }
    this.standing.clear();
  }
}

export default {
  initialize({ model }) {
    const places = new Places(model);
    return () => places.leave();
  },

  render({ model, el }) {
    const view = new View(model);
    el.append(view.root);
    requestAnimationFrame(() => view.start());
    return () => view.stop();
  },
};
