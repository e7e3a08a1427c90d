/* content_random_zoom.c - keras.layers.RandomZoom: a factor above 1 zooms out. */
#include "content/draws.h"
#include "content/images/image_layer.h"

/* Which draw it is: 0 for the height, 1 for the width. */
static float
zoom_of(const struct image_layer *layer, const float *u, int which)
{
    return draws_between(u[which], 1.0 + layer->low[which], 1.0 + layer->high[which]);
}

static uint32_t
tell(const struct image_layer *layer, const float *u, struct content_drawn *ret_drawn)
{
    ret_drawn[0] = (struct content_drawn){ "height", (double)zoom_of(layer, u, 0) };
    ret_drawn[1] = (struct content_drawn){ "width", (double)zoom_of(layer, u, !layer->same_zoom) };
    return 2;
}

static void
zoom(const struct image_layer *layer, const struct images *images, const float *u,
     const float *from, float *to)
{
    float down = zoom_of(layer, u, 0), across = zoom_of(layer, u, !layer->same_zoom);
    struct warp_map map = { .a0 = across, .b1 = down };

    map.a2 = ((float)images->width - 1.0F) / 2.0F * (1.0F - across);
    map.b2 = ((float)images->height - 1.0F) / 2.0F * (1.0F - down);
    warp_image(&layer->warp, &map, images->height, images->width, images->channels, from, to);
}

static tundish_status
check_factor(const struct stage_config *config, const char *parameter, struct image_layer *layer,
             int which)
{
    tundish_status status =
        image_layer_factor(config, parameter, -1, &layer->low[which], &layer->high[which]);

    if (status == TUNDISH_OK && layer->low[which] <= -1 && layer->high[which] < 1)
        return stage_complain(config, "random_zoom: %s must be greater than -1", parameter);
    return status;
}

static tundish_status
random_zoom_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                 bool *ret_batch_wide)
{
    struct image_layer *layer = state;
    tundish_status status;

    const struct spec_value *width = spec_get(config->stage, "width_factor");

    layer->make = zoom;
    layer->tell = tell;
    layer->same_zoom = width == NULL || width->kind == SPEC_NULL;
    layer->draws = layer->same_zoom ? 1 : 2;
    image_layer_open_warp(layer, config);
    status = check_factor(config, "height_factor", layer, 0);
    if (status == TUNDISH_OK && !layer->same_zoom)
        status = check_factor(config, "width_factor", layer, 1);
    if (status == TUNDISH_OK)
        status = image_layer_open(layer, config, ret_schema, ret_batch_wide);
    return status;
}

const struct content_ops content_random_zoom = {
    .name = "random_zoom",
    .takes_missing = true,
    .state_bytes = sizeof(struct image_layer),
    .draws = true,
    .open = random_zoom_open,
    .apply = image_layer_apply,
    .drawn = image_layer_drawn,
    .close = image_layer_close,
};
